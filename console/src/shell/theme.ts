/** The colours of the console: light, dark, or those of the device. The choice is kept on the device. */
import { useSyncExternalStore } from "react";

const NAME = "canvassing-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
export const themes = [
  ["device", "Device colours"],
  ["light", "Light colours"],
  ["dark", "Dark colours"],
] as const;
type Theme = (typeof themes)[number][0];

export const themeOf = (): Theme => (themes.find(([theme]) => theme === localStorage.getItem(NAME)) ?? themes[0])[0];

export function chooseTheme(theme: string): Theme {
  localStorage.setItem(NAME, theme);
  applyTheme();
  dark.dispatchEvent(new Event("change"));
  return themeOf();
}

/** Sets the colours of the page. Call this before the page is drawn. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = themeOf();
}

/** The colours that the page has at the moment. */
export function schemeOf(): "light" | "dark" {
  const theme = themeOf();
  if (theme !== "device") return theme;
  return dark.matches ? "dark" : "light";
}

/** Returns the colours of the page, and renders the component again when they change. */
export const useScheme = (): "light" | "dark" => useSyncExternalStore(watch, schemeOf);

function watch(changed: () => void): () => void {
  dark.addEventListener("change", changed);
  return () => dark.removeEventListener("change", changed);
}
