/** Tests that texts and the borders of input fields differ enough from what is behind them (WCAG 2.2, 1.4.3 and 1.4.11). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";

const css = readFileSync(join(root, "console/src/shell/base.css"), "utf8");
const schemes = ["light", "dark"] as const;
type Scheme = (typeof schemes)[number];
const colours = new Map(
  [...css.matchAll(/--([\w-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);/g)].map(
    ([, name = "", light = "", dark = ""]) => [name, { light, dark }],
  ),
);

/** The relative luminance that WCAG defines. */
function luminance(name: string, scheme: Scheme): number {
  const hex = colours.get(name)?.[scheme] ?? expect.fail(`base.css has no colour ${name}`);
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string, scheme: Scheme): number {
  const [dark = 0, light = 0] = [luminance(one, scheme), luminance(other, scheme)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const backgrounds = ["surface", "raised", "page", "hover"];
const texts = ["text", "text-soft", "muted", "accent-strong", "danger"].flatMap((text) =>
  backgrounds.map((background) => [text, background] as const),
);
const marks = ["accent-strong", "danger", "good", "warn"].map(
  (kind) => [kind, `${kind.replace("-strong", "")}-soft`] as const,
);

test.for([...texts, ...marks, ["on-accent", "accent"] as const])("%s on %s is readable", ([text, background]) => {
  for (const scheme of schemes) expect(contrast(text, background, scheme), scheme).toBeGreaterThanOrEqual(4.5);
});

test.for([
  ["line-control", "surface"],
  ["line-control", "page"],
  ["accent", "surface"],
  ["danger", "surface"],
] as const)("%s can be seen on %s", ([border, background]) => {
  for (const scheme of schemes) expect(contrast(border, background, scheme), scheme).toBeGreaterThanOrEqual(3);
});
