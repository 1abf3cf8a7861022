/** Starts the console. */
// These style sheets come first, so that the style sheets of the components can override their rules.
import "./shell/base.css";
import "./ui/layout.css";
import { MutationCache, notifyManager, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RequestFailed } from "./api/client.ts";
import { App } from "./app.tsx";
import { applyTheme } from "./shell/theme.ts";
import { watchBack } from "./ui/back.ts";
import { Part } from "./ui/states.tsx";

// By default, TanStack Query uses a timer to tell components that a request has started. Until the timer fires, the button of a form is
// still enabled, so a second click would send the request twice. Escape could also close a dialog before it shows the answer. With a
// microtask, components learn of the request before the browser handles the next click or key.
notifyManager.setScheduler(queueMicrotask);

const RETRIES = 2;
/**
 * The HTTP statuses of a change that failed because somebody else has deleted or changed the record. The page then loads all its data
 * again.
 */
const OUTDATED = [404, 409];

const queries = new QueryClient({
  mutationCache: new MutationCache({
    onError: (error) => {
      if (error instanceof RequestFailed && OUTDATED.includes(error.status)) void queries.invalidateQueries();
    },
  }),
  defaultOptions: {
    queries: {
      // A read is repeated if the service was busy or could not be reached. If the service has refused the request, another attempt would
      // not help.
      retry: (failures, error) =>
        failures < RETRIES && (!(error instanceof RequestFailed) || error.status === 429 || error.status >= 500),
    },
    // The answer to a change may contain a secret that is shown only once. TanStack Query would keep it for five minutes after the dialog
    // has closed.
    mutations: { gcTime: 0 },
  },
});

applyTheme();
watchBack();
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element with the id root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Part what="the console">
        <App />
      </Part>
    </QueryClientProvider>
  </StrictMode>,
);
