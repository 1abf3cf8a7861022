/** Registers the service worker, which starts the console without a connection. Removes it if the deployment has switched it off. */
const URL_OF_WORKER = "/sw.js";

const policy = window.trustedTypes?.createPolicy("service-worker", {
  createScriptURL(url) {
    if (url !== URL_OF_WORKER) throw new TypeError(`${url} is not the service worker`);
    return url;
  },
});

/** The worker downloads the files of all pages. If it began before this time, it would delay the first page on a slow connection. */
const AFTER_MS = 6_000;

export async function installWorker(isWanted: boolean): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  if (isWanted) {
    await new Promise((resolve) => setTimeout(resolve, AFTER_MS - performance.now()));
    if (!navigator.onLine) await new Promise((resolve) => addEventListener("online", resolve, { once: true }));
    await navigator.serviceWorker.register(policy?.createScriptURL(URL_OF_WORKER) ?? URL_OF_WORKER);
    return;
  }
  for (const registration of await navigator.serviceWorker.getRegistrations()) await registration.unregister();
  for (const name of await caches.keys()) await caches.delete(name);
}
