/** The colours of the console: light, dark, or those of the device. The choice is kept on the device. */
const NAME = "canvassing-theme";
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
  return themeOf();
}

/** Call it before the page is drawn. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = themeOf();
}

/** The colours that the page has at the moment. */
export function schemeOf(): "light" | "dark" {
  const theme = themeOf();
  if (theme !== "device") return theme;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
