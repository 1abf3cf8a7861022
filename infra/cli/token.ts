/**
 * Implements `npm run --silent token -- EMAIL`. It prints an access token of the running local service to stdout and nothing else, so that
 * scripts can use the output. It prints the target to stderr.
 */
import { serviceUrl } from "../local/address.ts";
import { argumentsOf, exitCodes, runCommand, WrongUsage } from "./options.ts";
import { nameTarget } from "./target.ts";

const usage = `npm run --silent token -- EMAIL
exit code 0: done, 1: failed, 2: wrong usage`;

async function requestToken(address: string): Promise<string> {
  const base = serviceUrl();
  nameTarget(`local service at ${base}`);
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

await runCommand(async () => {
  const [email, ...more] = argumentsOf({}, usage).positionals;
  if (email === undefined || more.length > 0) throw new WrongUsage(`usage: ${usage}`);
  console.log(await requestToken(email));
  return exitCodes.done;
});
