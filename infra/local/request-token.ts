/** Requests an access token for a user at the path `/local/token`. Only the local service has this path, and it asks for no password. */

/** Returns the token as `text`. If `ok` is false, `text` is the error message of the response. Rejects if the service does not respond. */
export async function requestToken(base: string, email: string, signal?: AbortSignal) {
  const answer = await fetch(`${base}/local/token`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email }),
    ...(signal !== undefined && { signal }),
  });
  return { ok: answer.ok, status: answer.status, text: (await answer.text()).trim() };
}
