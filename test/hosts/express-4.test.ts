import { createRequire } from "node:module";
import type express from "express";
import { expressHost } from "./express-hosts.ts";
import { holdToLaws } from "./hosts.ts";

/** The types are those of 5, which has the same methods. */
const express4: typeof express = createRequire(import.meta.url)("express4");

holdToLaws(expressHost("Express 4", express4));
