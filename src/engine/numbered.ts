/** Where an object keeps what tells its `number`. */
export const NUMBERED: unique symbol = Symbol("oncekey.numbered");

interface Numbered {
  readonly [NUMBERED]: () => number;
}

/** Gives an object a `number` of its own that is asked for when it is read; by one descriptor, as `addSignal` has it. */
export function addNumber<T extends Numbered>(target: T): asserts target is T & { readonly number: number } {
  Object.defineProperty(target, "number", NUMBER);
}

const NUMBER: PropertyDescriptor & ThisType<Numbered> = {
  enumerable: true,
  get() {
    return this[NUMBERED]();
  },
};
