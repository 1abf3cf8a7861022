/**
 * The headers that API Gateway keeps to itself between client and function, by the table of its "important notes for REST APIs"
 * (column `lambda`).
 */
type Header = readonly [name: string, value: string];

/** A function is not handed these. Beside the table's own names are two that belong to one connection. */
const droppedOfRequest = new Set([
  "connection",
  "content-md5",
  "expect",
  "keep-alive",
  "max-forwards",
  "proxy-authenticate",
  "proxy-connection",
  "server",
  "te",
  "trailer",
  // The table says "exception" for it. The server in front of the function has put the chunks together before.
  "transfer-encoding",
  "upgrade",
  "www-authenticate",
]);

/** A client is not given these by a function. */
const droppedOfAnswer = new Set([
  "expect",
  "host",
  "proxy-authenticate",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
]);

/** A client is given these under another name; `Date` and `Server` themselves are then API Gateway's own. */
const renamedOfAnswer = new Set([
  "authorization",
  "connection",
  "content-md5",
  "date",
  "max-forwards",
  "server",
  "user-agent",
  "www-authenticate",
]);

export const reachesFunction = (name: string): boolean => !droppedOfRequest.has(name.toLowerCase());

/** What a client sees of a function's headers. Every answer has a media type. */
export function clientHeaders(headers: readonly Header[]): Header[] {
  const seen = headers
    .filter(([name]) => !droppedOfAnswer.has(name.toLowerCase()))
    .map(
      ([name, value]): Header =>
        renamedOfAnswer.has(name.toLowerCase()) ? [`x-amzn-Remapped-${name}`, value] : [name, value],
    );
  const isTyped = seen.some(([name]) => name.toLowerCase() === "content-type");
  return isTyped ? seen : [...seen, ["Content-Type", "application/json"]];
}
