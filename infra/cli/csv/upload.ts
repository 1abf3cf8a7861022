/** Sends the file of an import to the bucket: again from its beginning when a connection breaks, for a link takes it whole and once. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Begun, type Content, importNow } from "./begin.ts";
import { CutOff, Failed, reasonOf } from "./fault.ts";
import type { Progress } from "./progress.ts";
import { type Service, waitAfter } from "./service.ts";
import { sendFile } from "./transfer.ts";

const TRIES = 8;

/** Throws Failed where the bucket will never take the file, and CutOff where it could not be sent. */
export async function upload(
  service: Service,
  file: string,
  { bytes }: Content,
  { found: { id, upload: first }, keep }: Begun,
  progress: Progress,
): Promise<void> {
  let link = first;
  for (let attempt = 1; ; attempt++) {
    if (link === null) throw new CutOff(`import ${id} has waited for its file too long`);
    let done = 0;
    const onBytes = (count: number): void => {
      done += count;
      progress.show({ name: "sending", done, total: bytes, unit: "bytes" });
    };
    const why = await sendFile({ ...link, file, bytes, signal: service.signal, onBytes }).then(refusalIn, (error) => {
      service.signal.throwIfAborted();
      return reasonOf(error);
    });
    if (why === undefined) break;
    if (attempt === TRIES) throw new CutOff(`the file could not be sent: ${why}`);
    progress.say(`${why}: the file is sent once more`);
    await sleep(waitAfter(attempt), undefined, { signal: service.signal });
    const now = await importNow(service, id);
    // The file was taken, and only the answer was lost.
    if (now.state !== "awaiting_upload") break;
    link = now.upload;
  }
  await keep({ uploaded: true, state: "awaiting_upload" });
}

/** Undefined: the bucket has the file. Throws Failed where it is another file than the one that was announced. */
function refusalIn({ status, body }: { readonly status: number; readonly body: string }): string | undefined {
  // 412: there is a file, and this link takes no other than ours.
  if ((status >= 200 && status < 300) || status === 412) return undefined;
  const code = /<Code>([^<]+)</.exec(body)?.[1] ?? "";
  if (/Digest|Checksum/.test(code)) throw new Failed("the file has changed while it was sent");
  return `the bucket answered ${status} ${code}`.trim();
}
