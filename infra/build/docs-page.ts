/**
 * Builds the page with the API reference. It is one HTML document that contains the script and the style of Swagger UI. The page's content
 * security policy allows only the scripts in the page.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const asset = createRequire(import.meta.url).resolve;
const read = (name: string): string => readFileSync(asset(`swagger-ui-dist/${name}`), "utf8");

/** The URL of the OpenAPI document is relative, so that the page also works below the path of an API Gateway stage. */
const START = `window.ui=SwaggerUIBundle({url:"openapi.json",dom_id:"#reference",deepLinking:true,validatorUrl:null,supportedSubmitMethods:["get","post","put","patch","delete"]})`;

export const SECURITY_SCHEME = "accessToken";

export interface DocsPage {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

/** The list of demo users with a button that signs the selected user in without a password. Only the page of a local service has them. */
export interface LocalSignIn {
  /** The path, relative to the page, that returns an access token. */
  readonly tokenPath: string;
  /** The e-mail addresses of the users in the list. The first user is selected. */
  readonly users: readonly string[];
}

/** Fetches an access token of the selected user and passes it to Swagger UI. Swagger UI sends the token with each request. */
const signInScript = ({ tokenPath }: LocalSignIn): string => `(()=>{
const at=(id)=>document.getElementById(id);
at("sign-in").addEventListener("click",async()=>{
const email=at("email").value;
const answer=await fetch(${JSON.stringify(tokenPath)},{method:"POST",headers:{"Content-Type":"application/json"},body:JSON.stringify({email})});
const text=(await answer.text()).trim();
if(answer.ok)window.ui.preauthorizeApiKey(${JSON.stringify(SECURITY_SCHEME)},text);
at("signed-in").textContent=answer.ok?"Signed in as "+email:text;
});
})()`;

const signInMarkup = ({ users }: LocalSignIn): string => `<p style="margin:1em;font-family:sans-serif">
<label>Demo user <select id="email">${users.map((email) => `<option>${email}</option>`).join("")}</select></label>
<button id="sign-in" type="button">Get a local token</button>
<output id="signed-in"></output>
</p>
`;

/** @param signIn adds the list of demo users and the sign-in button. The page of a deployment does not have them. */
export function docsPage(signIn?: LocalSignIn): DocsPage {
  const scripts = [
    escapeScript(read("swagger-ui-bundle.js")),
    START,
    ...(signIn === undefined ? [] : [signInScript(signIn)]),
  ];
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
${signIn === undefined ? "" : signInMarkup(signIn)}<div id="reference"></div>
${scripts.map((text) => `<script>${text}</script>`).join("\n")}
</body>
</html>
`;
  return { html, contentSecurityPolicy: policy(hashes) };
}

/**
 * Returns the page's content security policy. Swagger UI needs inline styles for its layout and data URLs for its icons. The page may not
 * contact other hosts.
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
 * Escapes `<!--`, `<script` and `</script` in a script, because HTML would read them as markup. They occur only in string literals and
 * regular expressions, in which an escaped `<` has the same meaning. Also removes the reference to the source map.
 */
function escapeScript(source: string): string {
  return source.replace(/<(?=!--|\/?script)/gi, "\\x3c").replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "");
}

/** Writes the page beside the bundle of the function that serves it. Does nothing if `outDir` does not contain this function. */
export function writeDocsPage(outDir: string, signIn: LocalSignIn | undefined): void {
  const page = join(outDir, "docs/page");
  if (existsSync(page)) writeFileSync(join(page, "page.json"), JSON.stringify(docsPage(signIn)));
}
