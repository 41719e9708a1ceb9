import { afterAll } from "vitest";
import { storesOpened } from "./databases.ts";
import { stopAll } from "./processes.ts";

declare module "vitest" {
  interface TaskMeta {
    storesOpened?: readonly string[];
  }
}

// Runs in every test file: nothing a file started outlives it, and the reporter learns what it opened.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures a hook wants off this pattern; we want none.
afterAll(async ({}, file) => {
  file.meta.storesOpened = storesOpened();
  await stopAll();
});
