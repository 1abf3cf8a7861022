/** Registers the service worker, which starts the console without a connection. Removes the worker if the deployment does not use it. */
const URL_OF_WORKER = "/sw.js";

const policy = window.trustedTypes?.createPolicy("service-worker", {
  createScriptURL(url) {
    if (url !== URL_OF_WORKER) throw new TypeError(`${url} is not the service worker`);
    return url;
  },
});

/** Milliseconds from the start of the page until the worker is registered. Its download of all pages must not delay the first page. */
const AFTER_MS = 6_000;

/** Milliseconds until the page tries again, if the connection broke while the browser downloaded the worker or its files. */
const AGAIN_MS = 5_000;

/** Registers the worker. Returns false if the browser could not download all its files. */
async function isInstalled(): Promise<boolean> {
  const { serviceWorker } = navigator;
  try {
    const { installing } = await serviceWorker.register(policy?.createScriptURL(URL_OF_WORKER) ?? URL_OF_WORKER);
    while (installing?.state === "installing") {
      await new Promise((resolve) => installing.addEventListener("statechange", resolve, { once: true }));
    }
    return installing?.state !== "redundant";
  } catch (error) {
    // A TypeError means that the script could not be downloaded, so another attempt may succeed. After other errors, it would not.
    if (error instanceof TypeError) return false;
    throw error;
  }
}

export async function installWorker(isWanted: boolean): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  if (isWanted) {
    let waitMs = AFTER_MS - performance.now();
    do {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      if (!navigator.onLine) await new Promise((resolve) => addEventListener("online", resolve, { once: true }));
      waitMs = AGAIN_MS;
    } while (!(await isInstalled()));
    return;
  }
  for (const registration of await navigator.serviceWorker.getRegistrations()) await registration.unregister();
  for (const name of await caches.keys()) await caches.delete(name);
}
