import type { Awaitable as AwaitableOfStore, Settling as SettlingOfStore } from "../stores/store.ts";

/** A value, or a promise of one; what stands above the engine need not know the port for it. */
export type Awaitable<T> = AwaitableOfStore<T>;

/** Whether a store's transactions may wait. */
export type Settling = SettlingOfStore;

/** What a function returns that runs inside a transaction: at once where the store's transactions must not wait. */
export type Returned<Settles extends Settling, T> = Settles extends "sync" ? T : Awaitable<T>;
