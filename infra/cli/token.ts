/**
 * Implements `npm run --silent token -- EMAIL`. It prints an access token of the running local service and nothing else, so that scripts
 * can use the output.
 */
import { serviceUrl } from "../local/address.ts";
import { argumentsOf, WrongUsage } from "./options.ts";

const usage = "npm run --silent token -- EMAIL";

async function requestToken(address: string): Promise<string> {
  const base = serviceUrl();
  const answer = await fetch(`${base}/local/token`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email: address }),
  }).catch(() => undefined);
  if (answer === undefined) throw new Error(`no local service answers at ${base}: start it with npm start`);
  const text = (await answer.text()).trim();
  if (!answer.ok) throw new Error(`${address}: ${text}`);
  return text;
}

try {
  const [email, ...more] = argumentsOf({}, usage).positionals;
  if (email === undefined || more.length > 0) throw new WrongUsage(`usage: ${usage}`);
  console.log(await requestToken(email));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = error instanceof WrongUsage ? 2 : 1;
}
