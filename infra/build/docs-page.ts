/**
 * Makes the API reference page: one HTML text with the script and style of Swagger UI. Its content security policy allows no other script.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const asset = createRequire(import.meta.url).resolve;
const read = (name: string): string => readFileSync(asset(`swagger-ui-dist/${name}`), "utf8");

/** The URL is relative, so that the page also works below the path of a stage. */
const START = `SwaggerUIBundle({url:"openapi.json",dom_id:"#reference",deepLinking:true,validatorUrl:null,supportedSubmitMethods:["get","post","put","patch","delete"]})`;

export interface DocsPage {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

export function docsPage(): DocsPage {
  const scripts = [escapeScript(read("swagger-ui-bundle.js")), START];
  const hashes = scripts.map((text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference</title>
<style>${read("swagger-ui.css").replace(/\n?\/\*# sourceMappingURL=.*?\*\//, "")}</style>
</head>
<body>
<div id="reference"></div>
${scripts.map((text) => `<script>${text}</script>`).join("\n")}
</body>
</html>
`;
  return { html, contentSecurityPolicy: policy(hashes) };
}

/**
 * Returns the page's content security policy. Swagger UI needs inline styles and data URLs for its layout and icons. No other host is
 * allowed.
 */
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

/**
 * Escapes `<!--`, `<script` and `</script`, which HTML would read as markup. They occur only in string and regular expression literals,
 * where an escaped `<` means the same.
 */
function escapeScript(source: string): string {
  return source.replace(/<(?=!--|\/?script)/gi, "\\x3c").replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "");
}
