/** Says whether the screen is as narrow as that of a phone. The style sheets use the same width. */
import { useSyncExternalStore } from "react";

export const NARROW = "(max-width: 860px)";
const narrow = matchMedia(NARROW);

function subscribe(changed: () => void): () => void {
  narrow.addEventListener("change", changed);
  return () => narrow.removeEventListener("change", changed);
}

export const useIsNarrow = (): boolean => useSyncExternalStore(subscribe, () => narrow.matches);
