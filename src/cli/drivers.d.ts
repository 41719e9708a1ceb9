/** Optional, and not installed where this is compiled. */
declare module "better-sqlite3";
