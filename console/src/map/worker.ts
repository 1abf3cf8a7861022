/**
 * Lets MapLibre start its worker under the console's Content-Security-Policy. With Trusted Types, the policy forbids loading a script whose
 * URL is a plain string. This file permits exactly one URL: the file of the worker, which comes from the same origin.
 */
import { prewarm, setWorkerUrl } from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?url";

const policy = window.trustedTypes?.createPolicy("maplibre", {
  createScriptURL(url) {
    if (url !== workerUrl) throw new TypeError(`${url} is not the worker of the map`);
    return url;
  },
});

/**
 * Returns a class that replaces `Worker`. MapLibre passes the URL as a plain string, which the Content-Security-Policy forbids. The class
 * therefore converts the URL with `admit`.
 */
const workerOf = (admit: (url: string) => string): typeof Worker =>
  class extends Worker {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(admit(String(url)), options);
    }
  };

if (policy !== undefined) globalThis.Worker = workerOf((url) => policy.createScriptURL(url));
setWorkerUrl(workerUrl);
// The worker starts while the page waits for its records.
prewarm();
