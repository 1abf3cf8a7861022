/** Opens pages of the console in a real browser, signed in as one user. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import * as z from "zod/mini";
import { root } from "../../infra/build/bundle.ts";
import { buildConsole, consoleDirectory } from "../../infra/build/console.ts";
import { faultsOf, noBrowser, openBrowser, openContext } from "../harness/browser.ts";
import { baseUrl } from "../harness/client.ts";
import { onceInRun } from "../harness/once.ts";

export interface Visit {
  readonly context: BrowserContext;
  readonly page: Page;
  /** The errors of the page's scripts, and what the page's Content-Security-Policy has refused. */
  readonly faults: readonly string[];
  /** The paths that the page has requested so far. */
  readonly paths: ReadonlySet<string>;
}

interface Screen {
  readonly width: number;
  readonly height: number;
}

export const desktop: Screen = { width: 1180, height: 580 };
export const phone: Screen = { width: 360, height: 480 };

const Features = z.array(
  z.object({
    layer: z.string(),
    id: z.optional(z.number()),
    color: z.optional(z.string()),
    count: z.optional(z.number()),
  }),
);
const Position = z.tuple([z.number(), z.number()]);

/** With CONSOLE_DOCS=1, the tests write the pictures and figures of docs/console.md, and otherwise they compare the figures. */
export const isWriting = process.env.CONSOLE_DOCS === "1";

/** A page may load at most this multiple of the kilobytes that docs/console.md states. */
export const TOLERANCE = 1.1;

/** The browser of this process. It ends with the process, so that the test files share the shaders that it has compiled for the maps. */
let launched: Promise<Browser> | undefined;

/** Runs `begin` with a browser before the tests of a file, or skips the tests if there is no browser. */
export function browserForAll(begin: (browser: Browser) => Promise<void>): () => Browser {
  let opened: Browser | undefined;
  let reason = noBrowser;
  beforeAll(async () => {
    if (noBrowser !== undefined) return;
    if (!(await fetch(`${baseUrl()}/config.json`)).ok) {
      reason = "this service does not serve the console";
      return;
    }
    await onceInRun("console", buildConsole);
    launched ??= openBrowser();
    opened = await launched;
    await begin(opened);
  });
  beforeEach(({ skip }) => skip(opened === undefined, reason));
  afterAll(async () => {
    for (const context of opened?.contexts() ?? []) await context.close();
  });
  return () => opened ?? expect.fail("no browser");
}

/** Signs in on the local issuer's page, and opens the page of the console at the path. */
export async function visit(
  browser: Browser,
  email: string,
  path: string,
  viewport = desktop,
  more: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await openContext(browser, { viewport, baseURL: baseUrl(), reducedMotion: "reduce", ...more });
  const page = await context.newPage();
  const faults = faultsOf(page);
  const paths = new Set<string>();
  context.on("request", (request) => paths.add(new URL(request.url()).pathname));
  await context.addInitScript("addEventListener('mapready', ({ detail }) => { window.shownMap = detail; })");
  await page.goto(`/api/session/login?returnTo=${encodeURIComponent(path)}`);
  await chooseUser(page, email);
  return { context, page, faults, paths };
}

/** Chooses a user on the sign-in page of the local issuer, in the field for other users: only demo users have a button. */
export async function chooseUser(page: Page, email: string): Promise<void> {
  await page.getByLabel("Another user").fill(email);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** The message that the page shows if a user presses "Send now" during an attempt, and a test for the error that the browser then logs. */
export const BEING_SENT = "This delivery is being sent at the moment.";
export const isBeingSent = (fault: string): boolean => / 409 .*\/redeliver$/.test(fault);

/** Presses the button until the page shows the message. The service refuses a delivery whose attempt has not quite ended. */
export async function pressUntil(page: Page, button: Locator, message: string): Promise<void> {
  const notice = page.getByRole("status").getByText(message).first();
  await repeated(() => button.click(), notice);
}

/** Repeats the action until the element is shown. */
async function repeated(act: () => Promise<void>, shown: Locator): Promise<void> {
  const attempt = async (): Promise<boolean> => {
    await act();
    return shown.waitFor({ timeout: 2_000 }).then(
      () => true,
      () => false,
    );
  };
  await expect.poll(attempt, soon).toBe(true);
}

export const chooseCsv = (page: Page, content: string | Buffer) =>
  page
    .getByLabel(/Drop a CSV file/)
    .setInputFiles({ name: "doors.csv", mimeType: "text/csv", buffer: Buffer.from(content) });

export async function chooseChange(page: Page, change: string, to: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Change", { exact: true }).selectOption({ label: change });
  await dialog.getByRole("combobox", { name: "To", exact: true }).selectOption({ label: to });
}

/** Closes all messages, because they cover buttons in a small window. */
export async function closeMessages(page: Page): Promise<void> {
  const close = page.getByRole("button", { name: "Close this message" });
  // A message may disappear by itself before the click. A click that fails is therefore ignored.
  while ((await close.count()) > 0) {
    await close
      .first()
      .click({ timeout: 1_000 })
      .catch(() => undefined);
  }
}

/** Waits until the number of prospects on the map is known, and returns it. The map may not have drawn them yet. */
export async function mapOf(page: Page): Promise<number> {
  await page.locator('[data-ready="true"] canvas').waitFor();
  const count = page.locator("[data-count]");
  await count.waitFor();
  return Number(await count.getAttribute("data-count"));
}

/** Returns the features of tiles that the map has drawn, each as often as it is drawn. */
export async function drawn(page: Page): Promise<z.infer<typeof Features>> {
  return Features.parse(
    await page.evaluate(`shownMap.queryRenderedFeatures()
      .filter(({ source, layer }) => source.startsWith("tiles-") && ["circle", "fill"].includes(layer.type))
      .map(({ sourceLayer: layer, properties: { id, color, count } }) => ({ layer, id, color, count }))`),
  );
}

export async function jumpTo(page: Page, center: readonly [lng: number, lat: number], zoom: number): Promise<void> {
  // `void` drops the result of `jumpTo`, which is the map. Sending the whole map from the browser to the test would take half a second.
  await page.evaluate(`void shownMap.jumpTo({ center: ${JSON.stringify(center)}, zoom: ${zoom} })`);
}

/** Returns where a coordinate of the map is on the page, in pixels. */
export async function positionOf(page: Page, lng: number, lat: number): Promise<readonly [x: number, y: number]> {
  const point = `(({ x, y }, { left, top }) => [x + left, y + top])(
    shownMap.project([${lng}, ${lat}]), shownMap.getCanvas().getBoundingClientRect())`;
  return Position.parse(await page.evaluate(point));
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the violations of WCAG 2.2 AA and of best practices that axe finds, each with the HTML of the element. */
export async function violationsOf(page: Page): Promise<string[]> {
  if (await page.evaluate("!('axe' in window)")) await page.evaluate(axe);
  return page.evaluate(`axe
    .run({
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      // With this option, axe does not describe the elements without violations, so it is faster.
      resultTypes: ["violations"],
    })
    .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`);
}

export async function picture(page: Page, name: string): Promise<void> {
  if (!isWriting) return;
  mkdirSync(join(root, "docs/console"), { recursive: true });
  await page.screenshot({ path: join(root, "docs/console", `${name}.png`), animations: "disabled" });
}

const DOCUMENT = join(root, "docs/console.md");

export function writeRow(name: string, ...cells: readonly (string | number)[]): void {
  if (!isWriting) return;
  const row = new RegExp(`^\\| ${name} \\|.*$`, "m");
  writeFileSync(DOCUMENT, readFileSync(DOCUMENT, "utf8").replace(row, `| ${[name, ...cells].join(" | ")} |`));
}

/** Returns the compressed kilobytes that docs/console.md states for a page, and those that the page has loaded so far. */
export async function figuresOf(name: string, { page, paths }: Visit): Promise<{ stated: number; measured: number }> {
  const files = [...paths].filter((path) => path.startsWith("/assets/")).map((path) => path.slice(1));
  const bytes = ["index.html", ...files].map((file) => gzipSync(readFileSync(join(consoleDirectory, file))).length);
  const measured = Math.round(bytes.reduce((sum, one) => sum + one, 0) / 1000);
  const calls = [...paths].filter((path) => path.startsWith("/api/") && !path.startsWith("/api/session/")).length;
  const row = new RegExp(`^\\| ${name} \\|.*$`, "m");
  const text = readFileSync(DOCUMENT, "utf8");
  if (isWriting) {
    const shownMs = z.number().parse(await page.evaluate("performance.now()"));
    writeRow(name, bytes.length, `${measured} KB`, calls, `${(shownMs / 1000).toFixed(1)} s`);
    return { stated: measured, measured };
  }
  return { stated: Number(/ (\d+) KB /.exec(row.exec(text)?.[0] ?? "")?.[1]), measured };
}

/** Options of waits for the map. The map draws a moment after its tiles have arrived, and drawing without a graphics card is slow. */
export const soon = { timeout: 240_000, interval: 200 };

/** Clicks on a place of the map until `opened` is shown. While the map replaces a tile, a click finds nothing. */
export async function clickUntil(page: Page, [lat, lng]: readonly [lat: number, lng: number], opened: Locator) {
  await repeated(async () => page.mouse.click(...(await positionOf(page, lng, lat))), opened);
}

export async function clustersOn(page: Page): Promise<number[]> {
  const counts = "shownMap.getStyle().sources.clusters.data.features.map(({ properties }) => properties.count)";
  return z.parse(z.array(z.number()), await page.evaluate(counts));
}

export const ascending = (ids: readonly number[]): number[] => ids.toSorted((a, b) => a - b);

export const pinsOf = async (page: Page) => (await drawn(page)).filter(({ layer }) => layer === "pins");
export const drawnIds = async (page: Page) => ascending((await pinsOf(page)).map(({ id = 0 }) => id));

/** Returns each id once. A territory that crosses the edge of a tile is in several tiles. */
export const territoriesOn = async (page: Page) => {
  const ids = (await drawn(page)).filter(({ layer }) => layer === "territories").map(({ id = 0 }) => id);
  return ascending([...new Set(ids)]);
};
