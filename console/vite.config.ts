/** Builds the console. With `npm run dev`, Vite serves it and sends requests of the API to the local service. */
import { defineConfig } from "vite";
import { landOutline } from "./land-outline.ts";

const service = process.env.SERVICE_URL ?? "http://127.0.0.1:3000";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [landOutline()],
  // The paths of the API are those of the service, so that the session's cookie belongs to the same origin.
  server: { proxy: { "/api": service, "/config.json": service, "/local": service } },
  build: {
    target: "es2024",
    // The Content-Security-Policy allows no inline scripts, and browsers of this target load modules ahead by themselves.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // MapLibre alone has more than Vite's limit. A test limits the part that every page loads.
    chunkSizeWarningLimit: 1500,
    rolldownOptions: {
      // Packages mark modules for servers that render React, which says nothing here. Times differ with the load of the machine.
      onLog(level, log, report) {
        if (log.code !== "MODULE_LEVEL_DIRECTIVE" && log.code !== "PLUGIN_TIMINGS") report(level, log);
      },
      output: {
        // A server that does not know `.mjs` would send MapLibre's worker with a type that browsers refuse for scripts.
        assetFileNames: ({ names }) =>
          names.some((name) => name.endsWith(".mjs")) ? "assets/[name]-[hash].js" : "assets/[name]-[hash][extname]",
      },
    },
  },
});
