/** Adds the service worker to the build, with the list of the built files. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

/** Returns a Vite plugin that writes the file `sw.js`, which browsers load from the root of the site. */
export function serviceWorker(): Plugin {
  return {
    name: "service-worker",
    apply: "build",
    generateBundle(_, bundle) {
      const files = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
      const list = JSON.stringify(files.sort().map((name) => `/${name}`));
      const source = readFileSync(join(import.meta.dirname, "service-worker.js"), "utf8");
      this.emitFile({ type: "asset", fileName: "sw.js", source: source.replace("FILES = []", `FILES = ${list}`) });
    },
  };
}
