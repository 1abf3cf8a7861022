// The service worker, with which the console starts without a connection. Its cache has the files of the last build, and no answers of the
// API. The cache STREETS has the street map of the user's territories, which console/src/field/kept-streets.ts stores there.
// The build replaces this empty list by the paths of all files whose names contain a hash of their content.
const FILES = [];
const CACHE = "canvassing-console";
const STREETS = "canvassing-streets";
const PAGE = "/";
/** Milliseconds after which the cached page is shown. With a weak signal, a request may otherwise take long before it fails. */
const PAGE_MS = 4_000;

addEventListener("install", (event) => event.waitUntil(keepFiles()));
addEventListener("activate", (event) => event.waitUntil(dropOldFiles()));
addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET") return;
  if (origin !== location.origin) event.respondWith(streetsOf(request));
  else if (pathname.startsWith("/assets/")) event.respondWith(fileOf(request));
  else if (request.mode === "navigate" && !/^\/(?:api|docs|health|local|openapi)/.test(pathname)) {
    event.respondWith(pageOf(event));
  }
});

async function keepFiles() {
  const cache = await caches.open(CACHE);
  const missing = await Promise.all(FILES.map(async (file) => ((await cache.match(file)) === undefined ? file : [])));
  await cache.addAll([PAGE, ...missing.flat()]);
}

/** Deletes the files of earlier builds. The browser calls this function when no page uses these files any more. */
async function dropOldFiles() {
  const cache = await caches.open(CACHE);
  for (const request of await cache.keys()) {
    const { pathname } = new URL(request.url);
    if (pathname !== PAGE && !FILES.includes(pathname)) await cache.delete(request);
  }
}

const keptOf = (path) => caches.match(path, { cacheName: CACHE });

/** Returns the cached file if there is one. It is never outdated, because its name contains a hash of its content. */
const fileOf = async (request) => (await keptOf(request.url)) ?? fetch(request);

/** Prefers cached tiles, because their URLs contain a version. Prefers the server for JSON, which names the newest version of the tiles. */
async function streetsOf(request) {
  const kept = await caches.match(request.url, { cacheName: STREETS });
  if (kept === undefined) return fetch(request);
  const isTile = !(kept.headers.get("Content-Type") ?? "").includes("json");
  return isTile ? kept : fetch(request).catch(() => kept);
}

/** The page comes from the service if the service answers, so that a new build is used at once. */
async function pageOf(event) {
  const answered = fetch(event.request);
  const late = new Promise((resolve) => setTimeout(resolve, PAGE_MS));
  const response = await Promise.race([answered.catch(() => undefined), late]);
  return response ?? (await keptOf(PAGE)) ?? answered;
}
