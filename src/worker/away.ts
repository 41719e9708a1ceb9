import { StoreUnavailable } from "../errors.ts";

/** So many failures in a row for want of the store, and the rest of a tick would only wait for it. */
const STORE_IS_AWAY = 3;

/** Hears of each record how it went, `undefined` where well, and throws the failure that shows that the store is away. */
export function noticeOutage(): (error: unknown) => void {
  let failures = 0;
  return (error) => {
    failures = error instanceof StoreUnavailable ? failures + 1 : 0;
    if (failures >= STORE_IS_AWAY) throw error;
  };
}
