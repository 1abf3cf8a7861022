/**
 * Creates an object once for each instance of a function. Lambda runs one instance in a process. Tests run all functions in one process,
 * in which each instance has its own contexts and caches.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** The instance in which a call runs. Only tests set it. */
export const instances = new AsyncLocalStorage<object>();
const only = {};

/**
 * Returns a function that creates the object at its first call in an instance. Callers mark the call as pure, so that a bundle without a
 * use of the object has no code for it.
 */
export function oncePerInstance<T extends object>(create: () => T): () => T {
  const created = new WeakMap<object, T>();
  return () => {
    const instance = instances.getStore() ?? only;
    const made = created.get(instance) ?? create();
    created.set(instance, made);
    return made;
  };
}
