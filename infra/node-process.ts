/** Node's `process` for the bundles: its import as an ES module looks at every name that it exports, and loads what some stand for. */
export const { env, versions } = process;
