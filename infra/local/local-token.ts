/** Gets access tokens at the path `/local/token`, which only the local service has. This path asks for no password. */

/** No local service answers yet. The same call may succeed later. */
export class NoLocalService extends Error {}

/** Gets a token for this user. If the service issues none, throws an error whose message tells the operator why. */
export async function localToken(base: string, email: string): Promise<string> {
  const answer = await fetch(`${base}/local/token`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email }),
  }).catch(() => undefined);
  if (answer === undefined) throw new NoLocalService(`no local service answers at ${base}: start it with npm start`);
  const text = (await answer.text()).trim();
  if (answer.status === 503) {
    throw new NoLocalService(`the local service at ${base} is starting: wait for the line "ready"`);
  }
  if (answer.ok) return text;
  // A deployed service has no such path, and answers with JSON.
  const why = text.startsWith("{") ? "this is no local service, so it needs credentials: see --help" : text;
  throw new Error(`no token of ${base} for ${email}: ${why}`);
}
