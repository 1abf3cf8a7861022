/** Creates an object once for each instance of a function. Lambda runs one instance in a process, and tests run many. */
import { AsyncLocalStorage } from "node:async_hooks";

/** The instance in which a call runs. Only tests set it. */
export const instances = new AsyncLocalStorage<object>();
const only = {};

/** Creates the object at the first call. Mark the call as pure, so that bundles without a use of the object have no code for it. */
export function oncePerInstance<T extends object>(create: () => T): () => T {
  const created = new WeakMap<object, T>();
  return () => {
    const instance = instances.getStore() ?? only;
    const made = created.get(instance) ?? create();
    created.set(instance, made);
    return made;
  };
}
