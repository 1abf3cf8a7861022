/** Builds the console. With `npm run dev`, Vite serves the console and forwards requests of the API to the local service. */
import { defineConfig } from "vite";
import { landOutline } from "./land-outline.ts";
import { serviceWorker } from "./service-worker.ts";

const service = process.env.SERVICE_URL ?? "http://127.0.0.1:3000";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [landOutline(), serviceWorker()],
  // Vite sends requests with these paths to the local service. The browser therefore sees a single origin, to which the session's cookie
  // belongs.
  server: { proxy: { "/api": service, "/config.json": service, "/local": service } },
  build: {
    target: "es2024",
    // Browsers of this target preload modules themselves, so Vite's polyfill is left out. Small files are not inlined either, because the
    // Content-Security-Policy allows no inline scripts and no fonts in `data:` URLs.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // With its default limit, Vite would always warn about the size of MapLibre. A test limits the size of the code that every page loads.
    chunkSizeWarningLimit: 1500,
    rolldownOptions: {
      // Hide two kinds of log messages: warnings about directives such as "use client", which have no effect in a browser bundle, and
      // warnings about slow plugins.
      onLog(level, log, report) {
        if (log.code !== "MODULE_LEVEL_DIRECTIVE" && log.code !== "PLUGIN_TIMINGS") report(level, log);
      },
      output: {
        // MapLibre's worker gets the ending `.js` instead of `.mjs`. Some servers do not know `.mjs` and would send the worker with a
        // content type that browsers refuse for scripts.
        assetFileNames: ({ names }) =>
          names.some((name) => name.endsWith(".mjs")) ? "assets/[name]-[hash].js" : "assets/[name]-[hash][extname]",
      },
    },
  },
});
