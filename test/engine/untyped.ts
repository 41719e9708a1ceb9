/** A value as plain JavaScript hands it over, of whatever type is asked for. */
export function untyped<T>(value: unknown): T {
  const anything: ReturnType<typeof JSON.parse> = value;
  return anything;
}
