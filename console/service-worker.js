// Lets the console start without a connection. It keeps the files of the last build and the page, and never an answer of the API. The field
// mode keeps the street map of the user's territories (console/src/field/kept-streets.ts).
// The build replaces FILES by the paths of all files whose names contain a hash of their content.
const FILES = [];
const CACHE = "canvassing-console";
const STREETS = "canvassing-streets";
const PAGE = "/";
/** A page that does not arrive within this time comes from the cache, because a weak signal can be slower than none. */
const PAGE_MS = 4_000;

addEventListener("install", (event) => event.waitUntil(keepFiles()));
addEventListener("activate", (event) => event.waitUntil(dropOldFiles()));
addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET") return;
  event.waitUntil(existingCache());
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

/** This runs when no page uses the files of the last build any more. */
async function dropOldFiles() {
  const cache = await caches.open(CACHE);
  for (const request of await cache.keys()) {
    const { pathname } = new URL(request.url);
    if (pathname !== PAGE && !FILES.includes(pathname)) await cache.delete(request);
  }
}

const keptOf = (path) => caches.match(path, { cacheName: CACHE });

let opened;
/**
 * Returns the cache, or undefined if a page has removed the worker and its cache. The worker then still runs until the page is closed. The
 * cache is opened with the first request, before its page can remove the cache: to open it after that would create it again.
 */
const existingCache = () => {
  opened ??= caches.has(CACHE).then((isThere) => (isThere ? caches.open(CACHE) : undefined));
  return opened;
};

async function keep(path, response) {
  await (await existingCache())?.put(path, response);
}

/** A file never changes, because its name contains a hash of its content. */
async function fileOf(request) {
  const kept = await keptOf(request.url);
  if (kept !== undefined) return kept;
  const response = await fetch(request);
  if (response.ok) await keep(request.url, response.clone());
  return response;
}

/** A tile never changes, because its URL contains its version. The style and the list of the tiles name the newest version. */
async function streetsOf(request) {
  const kept = await caches.match(request.url, { cacheName: STREETS });
  if (kept === undefined) return fetch(request);
  const isTile = !(kept.headers.get("Content-Type") ?? "").includes("json");
  return isTile ? kept : fetch(request).catch(() => kept);
}

/** The page comes from the service if the service answers, so that a new build is used at once. */
async function pageOf(event) {
  const answered = fetch(event.request).then(async (response) => {
    const isPage =
      response.ok && !response.redirected && (response.headers.get("Content-Type") ?? "").startsWith("text/html");
    if (isPage) await keep(PAGE, response.clone());
    return response;
  });
  event.waitUntil(answered.catch(() => undefined));
  const late = new Promise((resolve) => setTimeout(resolve, PAGE_MS));
  const response = await Promise.race([answered.catch(() => undefined), late]);
  return response ?? (await keptOf(PAGE)) ?? answered;
}
