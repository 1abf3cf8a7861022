/**
 * Opens pages in a real browser without a window. On Linux x64, the browser is Chromium from an npm package. On other platforms, it is the
 * installed Chrome.
 */
import { existsSync } from "node:fs";
import packaged from "@sparticuz/chromium";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { onceInRun } from "./once.ts";

/** Chrome's usual paths on macOS, Linux and Windows. */
const INSTALLED = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/usr/bin/google-chrome",
  "/usr/bin/chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** True on Linux x64, the only platform for which the npm package has a Chromium. */
const isPackaged = process.platform === "linux" && process.arch === "x64";

/** The reason why tests with a browser are skipped. Undefined if this machine has a browser. */
export const noBrowser: string | undefined =
  isPackaged || INSTALLED.some((path) => existsSync(path)) ? undefined : "this machine has no Chrome";

/**
 * The arguments that the packaged Chromium needs in a container. The tests do not use the longer list that the package recommends, because
 * that list disables checks of the browser that they need.
 */
const IN_A_CONTAINER = [
  "--no-sandbox",
  "--no-zygote",
  "--use-gl=angle",
  "--use-angle=swiftshader",
  "--enable-unsafe-swiftshader",
  // Without a graphics card, drawing the pages through WebGL's software driver takes four times as long as drawing them directly. Maps
  // still use WebGL.
  "--disable-gpu-compositing",
  "--disable-gpu-rasterization",
];

/**
 * Maximum milliseconds of a wait for the browser. Playwright waits for 30 s by default, but a busy machine can need minutes. The wait must
 * be shorter than the time-out of the tests, so that the error says what the test has waited for.
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

/**
 * Returns the path of the packaged Chromium in the temporary directory. All test processes use the same file. The first process unpacks it
 * and the others wait, because a file cannot be executed while it is being written.
 */
async function unpacked(): Promise<string> {
  await onceInRun("chromium", () => packaged.executablePath());
  return packaged.executablePath();
}

/**
 * Collects the errors that the browser reports for the page, such as violations of the content security policy, uncaught exceptions, and
 * failed requests with their URLs.
 */
export function faultsOf(page: Page): readonly string[] {
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`${message.text()} ${message.location().url}`.trim());
  });
  return faults;
}
