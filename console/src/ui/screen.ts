/** Says whether the screen is as narrow as that of a phone. The style sheets use the same width. */
import { useSyncExternalStore } from "react";

const narrow = matchMedia("(max-width: 860px)");

function subscribe(changed: () => void): () => void {
  narrow.addEventListener("change", changed);
  return () => narrow.removeEventListener("change", changed);
}

export const useIsNarrow = (): boolean => useSyncExternalStore(subscribe, () => narrow.matches);
