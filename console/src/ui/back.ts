/** Stops the browser's Back and Forward while the user would lose data by leaving the page. */
import { useEffect, useEffectEvent } from "react";

let held: { readonly href: string; readonly ask: () => void } | undefined;

/** Call this before the router adds its listener. Otherwise that listener comes first, and replaces the page that has to ask. */
export const watchBack = (): void =>
  addEventListener("popstate", (event) => {
    if (held === undefined) return;
    event.stopImmediatePropagation();
    history.pushState(null, "", held.href);
    held.ask();
  });

/** While `isActive`, Back and Forward only call `ask`. */
export function useWithoutBack(isActive: boolean, ask: () => void): void {
  const stopped = useEffectEvent(ask);
  useEffect(() => {
    if (!isActive) return;
    held = { href: location.href, ask: () => stopped() };
    return () => {
      held = undefined;
    };
  }, [isActive]);
}
