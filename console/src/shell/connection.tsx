/** Tells the user that the browser has no connection, because pages then show data that they loaded before. */
import { useSyncExternalStore } from "react";
import style from "./shell.module.css";

function subscribe(changed: () => void): () => void {
  addEventListener("online", changed);
  addEventListener("offline", changed);
  return () => {
    removeEventListener("online", changed);
    removeEventListener("offline", changed);
  };
}

export const useOnline = (): boolean => useSyncExternalStore(subscribe, () => navigator.onLine);

export function Connection() {
  if (useOnline()) return null;
  return (
    <p className={style.offline} role="status">
      You are offline. You see what was loaded before, and changes cannot be saved.
    </p>
  );
}
