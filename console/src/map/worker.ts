/**
 * Gives MapLibre its worker under the console's Content-Security-Policy. The policy allows no script from a string, and this file admits
 * exactly one: the worker's file, which is served by the same origin.
 */
import { setWorkerUrl } from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?url";

const policy = window.trustedTypes?.createPolicy("maplibre", {
  createScriptURL(url) {
    if (url !== workerUrl) throw new TypeError(`${url} is not the worker of the map`);
    return url;
  },
});

/** MapLibre starts its worker with a string, which such a page refuses. */
const workerOf = (admit: (url: string) => string): typeof Worker =>
  class extends Worker {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(admit(String(url)), options);
    }
  };

if (policy !== undefined) globalThis.Worker = workerOf((url) => policy.createScriptURL(url));
setWorkerUrl(workerUrl);
