/** Opens pages in a browser without a window: on Linux x64 Chromium from an npm package, elsewhere the installed Chrome. */
import { existsSync } from "node:fs";
import packaged from "@sparticuz/chromium";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { onceInRun } from "./once.ts";

const INSTALLED = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/usr/bin/google-chrome",
  "/usr/bin/chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** The npm package has a Chromium only for this platform. */
const isPackaged = process.platform === "linux" && process.arch === "x64";

/** The reason to skip tests with a browser. Undefined if this machine has a browser. */
export const noBrowser: string | undefined =
  isPackaged || INSTALLED.some((path) => existsSync(path)) ? undefined : "this machine has no Chrome";

/** The flags of Chromium in a container. The default flags of the npm package also switch off checks of the browser that the tests need. */
const IN_A_CONTAINER = [
  "--no-sandbox",
  "--no-zygote",
  "--use-gl=angle",
  "--use-angle=swiftshader",
  "--enable-unsafe-swiftshader",
  // These flags avoid WebGL's software driver. On a machine without a graphics card, it would draw pages four times as slowly.
  "--disable-gpu-compositing",
  "--disable-gpu-rasterization",
];

/**
 * Maximum time of an action in the browser, in milliseconds. Playwright's default of 30 s is too short on busy machines. The time-out of
 * the tests is longer than this.
 */
const WAIT_MS = 240_000;

export async function openBrowser(): Promise<Browser> {
  const timeout = WAIT_MS;
  if (!isPackaged)
    return chromium.launch({ executablePath: INSTALLED.find((path) => existsSync(path)) ?? "", timeout });
  return chromium.launch({ executablePath: await unpacked(), args: IN_A_CONTAINER, timeout });
}

/** Opens a context (a browser window with its own cookies) whose pages wait up to `WAIT_MS`. */
export async function openContext(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(WAIT_MS);
  return context;
}

/** Unpacks Chromium once for all test processes, because a file cannot be executed while another process writes it. */
async function unpacked(): Promise<string> {
  await onceInRun("chromium", () => packaged.executablePath());
  return packaged.executablePath();
}

/** Collects what the browser reports, such as violations of the content security policy, uncaught exceptions and failed requests. */
export function faultsOf(page: Page): readonly string[] {
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`${message.text()} ${message.location().url}`.trim());
  });
  return faults;
}
