import { startBank } from "./bank.ts";

const { PORT = "3001", DATA_DIR = "./data" } = process.env;

try {
  const bank = await startBank({ port: readPort(PORT), dataDir: DATA_DIR });
  const stop = (): void => void bank.close();
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  console.log(`The bank simulator answers on ${bank.url}`);
} catch (error) {
  console.error(`The bank simulator could not start: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65535) return port;
  throw new Error(`PORT must be a number from 0 to 65535, not "${text}".`);
}
