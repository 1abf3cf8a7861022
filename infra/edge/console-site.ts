/** What CloudFront and the local service need to serve the console: edge functions, headers, settings and files. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../build/bundle.ts";
import { consoleDirectory } from "../build/console.ts";

export const API_PATHS = ["/api/*", "/docs", "/openapi*", "/health*"] as const;

export const INDEX = "index.html";
export const CONFIG = "config.json";
/** The folder of the files whose names contain a hash of their content. */
export const ASSETS = "assets/";

/** Returns the code of an edge function. Without https, cookie names lose the prefix `__Host-`, which browsers accept only over https. */
export function edgeFunction(name: "api-request" | "page-request", isSecure: boolean): string {
  const source = readFileSync(join(root, "infra/edge", `${name}.js`), "utf8");
  return isSecure ? source : source.replaceAll('"__Host-', '"');
}

/** Returns the directory with the built console, or one with a placeholder page if the console is not built. */
export function consoleFiles(): string {
  return existsSync(join(consoleDirectory, INDEX)) ? consoleDirectory : join(root, "infra/edge/placeholder");
}

/** The street map of the console. Without one, the console draws an outline of the land. */
export interface Basemap {
  /** The URLs of the MapLibre styles for light and for dark screens. */
  readonly light: string;
  readonly dark: string;
  /** Further origins from which the styles load tiles or icons, such as `https://tiles.example.com`. */
  readonly origins: readonly string[];
}

/** The default street map needs no key, and all its parts come from one origin. It is grey, so coloured prospects are easy to see. */
const openFreeMap: Basemap = {
  light: "https://tiles.openfreemap.org/styles/positron",
  dark: "https://tiles.openfreemap.org/styles/dark",
  origins: [],
};

export const NO_BASEMAP = "none";

/** Returns OpenFreeMap by default, and undefined for `NO_BASEMAP`. An operator's own style is used on light and on dark screens. */
export function basemapOf(styleUrl: string | undefined, origins: readonly string[] = []): Basemap | undefined {
  if (styleUrl === undefined) return openFreeMap;
  return styleUrl === NO_BASEMAP ? undefined : { light: styleUrl, dark: styleUrl, origins };
}

export interface ConsoleSettings {
  readonly issuer: string;
  readonly basemap: Basemap | undefined;
  /** GeoJSON lines with names, which the console draws if there is no street map, or if the server of the street map does not answer. */
  readonly streets?: object | undefined;
  /** False removes the service worker from all devices, when they next open the console with a connection. */
  readonly offline: boolean;
}

/** The content of the file config.json, which the console reads at its start. */
export const consoleConfig = ({ issuer, basemap, streets, offline }: ConsoleSettings): string =>
  JSON.stringify({
    issuer,
    basemap: basemap === undefined ? null : { light: basemap.light, dark: basemap.dark },
    streets: streets ?? null,
    offline,
    signIn: "/api/session/login",
  });

/** Returns the `Cache-Control` of a file. A browser may cache an asset for a year, because a changed asset has a different name. */
export const cacheControl = (path: string): string =>
  path.startsWith(ASSETS) ? "public, max-age=31536000, immutable" : "no-cache";

/**
 * A page may contact only its own origin, the bucket to which it uploads files, and the origins of the base map. The page requires Trusted
 * Types and allows only two policies: one for the map's worker (console/src/map/worker.ts) and one for the service worker
 * (console/src/shell/installed.ts).
 * @param uploadOrigin the origin of the presigned URLs
 */
export function contentSecurityPolicy(uploadOrigin: string, basemap: Basemap | undefined): string {
  const styles = basemap === undefined ? [] : [basemap.light, basemap.dark].map((url) => new URL(url).origin);
  const origins = [...styles, ...(basemap?.origins ?? [])];
  const map = [...new Set(origins)].map((origin) => ` ${origin}`).join("");
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data: blob:${map}`,
    `connect-src 'self' ${uploadOrigin}${map}`,
    "worker-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "manifest-src 'self'",
    "trusted-types maplibre service-worker",
  ].join("; ");
}

export const pageHeaders = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(self), microphone=()",
} as const;
