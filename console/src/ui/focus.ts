/** When a dialog or a panel closes, returns the focus to the element that had it before. */
import { type RefObject, useLayoutEffect } from "react";

/**
 * Remembers which element has the focus when a container (a dialog or a panel) opens, and calls `open`. The container closes when React
 * removes it, or when `key` changes. The hook then calls `close`, and gives the focus back to the remembered element. If this element no
 * longer exists, the content of the page gets the focus. If the user has moved the focus out of the container, it stays where it is.
 * Without this hook, no element would have the focus afterwards, and the next press of Tab would begin at the top of the page.
 */
export function useFocusReturn<E extends HTMLElement>(
  container: RefObject<E | null>,
  { key, open, close }: { key?: unknown; open: (element: E) => void; close?: (element: E) => void },
): void {
  // This is a layout effect, because the clean-up must run before React removes the container from the page.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new `key` means that the container has closed and opened again
  useLayoutEffect(() => {
    const element = container.current;
    if (element === null) return;
    const before = document.activeElement;
    open(element);
    return () => {
      close?.(element);
      const { activeElement: now, body } = document;
      // If the focus is outside the container, the user has moved the focus there. It then stays where it is.
      if (now !== null && now !== body && !element.contains(now)) return;
      const isThere = before instanceof HTMLElement && before !== body && before.isConnected;
      (isThere ? before : document.getElementById("content"))?.focus();
    };
  }, [key]);
}
