/**
 * Builds the page with the API reference: one HTML document that contains the guides, and the script and style of Swagger UI as compressed
 * base64. The page's content security policy allows only two scripts: Swagger UI and docs-page-browser.js.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const asset = createRequire(import.meta.url).resolve;
const read = (name: string): string => readFileSync(asset(`swagger-ui-dist/${name}`), "utf8");

export const SECURITY_SCHEME = "accessToken";

/** A list of demo users, with a button that signs in the selected one without a password. Only the page of a local service has it. */
export interface LocalSignIn {
  /** The path, relative to the page, that returns an access token. */
  readonly tokenPath: string;
  readonly users: readonly string[];
}

const signInMarkup = ({ users }: LocalSignIn): string => `<nav>
<label>Demo user <select id="email">${users.map((email) => `<option>${email}</option>`).join("")}</select></label>
<button id="sign-in" type="button">Get a local token</button>
<output id="signed-in"></output>
</nav>
`;

/** The guides for clients, in the order of the page. A link between two of them leads to the guide in the page. */
const guides = [
  ["webhooks", "Receive webhooks"],
  ["csv", "Import and export CSV"],
  ["build-an-app", "Build an app"],
  ["offline", "Work offline"],
  ["bulk", "Change many prospects"],
  ["limits", "Limits"],
  ["errors", "Errors"],
] as const;

const guideId = (name: string): string => `guide-${name}`;

/** Returns the text of a guide. Links to files that are not in the page become plain text. */
function guideText(name: string): string {
  const text = readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), "utf8").replace(/^# .*\n/, "");
  return text.replace(/\[([^\]]+)\]\((?!https?:)([^)\s]*)\)/g, (_, words: string, target: string) => {
    const known = guides.find(([other]) => target.replace(/#.*/, "") === `${other}.md`);
    return known === undefined ? words : `[${words}](#${guideId(known[0])})`;
  });
}

const LINKS = `<nav><a href="openapi.json">OpenAPI 3.1</a> <a href="openapi-3.0.json">OpenAPI 3.0, for code generators</a></nav>
`;

const STYLE = `body{font-family:sans-serif}nav,.guides{max-width:1460px;margin:1em auto;padding:0 20px}nav a{margin-right:1em}
.guides summary{cursor:pointer;padding:.4em 0;font-weight:600}.filter .operation-filter-input{width:100%}`;

/** Builds the page. `signIn` is undefined for the page of a deployment. */
export function docsPage(signIn?: LocalSignIn) {
  const script = read("swagger-ui-bundle.js").replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "");
  const style = `${read("swagger-ui.css").replace(/\n?\/\*# sourceMappingURL=.*?\*\//, "")}${STYLE}`;
  const content = {
    style,
    script,
    guides: guides.map(([name, title]) => ({ id: guideId(name), title, text: guideText(name) })),
    ...(signIn !== undefined && { signIn: { tokenPath: signIn.tokenPath, scheme: SECURITY_SCHEME } }),
  };
  const packed = gzipSync(JSON.stringify(content)).toString("base64");
  const start = readFileSync(new URL("docs-page-browser.js", import.meta.url), "utf8");
  const hashes = [start, script].map((text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference</title>
</head>
<body>
${LINKS}${signIn === undefined ? "" : signInMarkup(signIn)}<div id="reference"></div>
<script id="packed" type="text/plain">${packed}</script>
<script>${start}</script>
</body>
</html>
`;
  return { html, contentSecurityPolicy: policy(hashes) };
}

/** Returns the content security policy. Swagger UI needs inline styles and data URLs of icons. The page must not contact other hosts. */
function policy(scriptHashes: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src ${scriptHashes.join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** Writes the page beside the bundle of the function that serves it. Does nothing if `outDir` has no such function. */
export function writeDocsPage(outDir: string, signIn: LocalSignIn | undefined): void {
  const page = join(outDir, "docs/page");
  if (existsSync(page)) writeFileSync(join(page, "page.json"), JSON.stringify(docsPage(signIn)));
}
