/**
 * Runs as a separate process that posts to a receiver whose answer never ends. It prints its memory before the post, and its maximum memory
 * during the post.
 */
import { post } from "#shared/outbound/post.ts";

const [, , url = ""] = process.argv;
const send = (path: string) => post({ url: `${url}${path}`, body: "{}", headers: {} }, "local");
for (let i = 0; i < 20; i++) await send("ok");
globalThis.gc?.();
const rest = process.memoryUsage().rss;
let peak = rest;
const look = (): void => {
  peak = Math.max(peak, process.memoryUsage().rss);
};
const timer = setInterval(look, 1);
const statuses: (number | null)[] = [];
for (let i = 0; i < 10; i++) {
  statuses.push((await send("endless")).status);
  look();
}
clearInterval(timer);
console.log(JSON.stringify({ rest, peak, statuses }));
