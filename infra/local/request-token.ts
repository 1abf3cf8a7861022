/** Requests an access token from the local service. Only the local service issues a token to anyone who names a user. */

/** Returns the token as `text`. If `ok` is false, `text` is the answer's reason. Rejects if no answer comes. */
export async function requestToken(base: string, email: string, signal?: AbortSignal) {
  const answer = await fetch(`${base}/local/token`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email }),
    ...(signal !== undefined && { signal }),
  });
  return { ok: answer.ok, status: answer.status, text: (await answer.text()).trim() };
}
