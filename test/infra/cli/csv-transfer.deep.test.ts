/** Tests uploads of files whose length changes after the upload has begun, and uploads to servers that answer unusually. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sendFile } from "../../../infra/cli/csv/transfer.ts";

/**
 * Uploads a file of ten bytes, and states `bytes` as its length. With `refuse`, the server calls `refuse` instead of asking for the content
 * of the file (`Expect: 100-continue`). Returns the answer or the error, and the numbers of bytes that were sent and received.
 */
async function upload(bytes: number, refuse?: RequestListener) {
  const folder = await mkdtemp(path.join(tmpdir(), "canvassing-upload-"));
  const file = path.join(folder, "a.csv");
  await writeFile(file, "name\nAnna\n");
  let [sent, received] = [0, 0];
  const server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    request.on("end", () => response.writeHead(200).end());
  });
  if (refuse !== undefined) server.on("checkContinue", refuse);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const headers = { "content-length": String(bytes) };
  const onBytes = (count: number): void => {
    sent = count;
  };
  const result = await sendFile({ url, headers, file, bytes }, new AbortController().signal, onBytes).then(
    (answer) => ({ answer, error: undefined }),
    (error: unknown) => ({ answer: undefined, error }),
  );
  return { ...result, sent, received };
}

test("a file that has become shorter or longer is not uploaded", async () => {
  expect(await upload(10)).toMatchObject({ received: 10, error: undefined });
  const changed = { name: "Failed", message: "the file has changed during the upload" };
  expect((await upload(11)).error).toMatchObject(changed);
  const { received, error } = await upload(9);
  expect(error).toMatchObject(changed);
  expect(received).toBeLessThan(9);
});

test("a server that refuses the file and closes the connection is heard before a byte is sent", async () => {
  const refused = await upload(10, (request, response) => {
    response
      .writeHead(403, { connection: "close", "retry-after": "7" })
      .end("AccessDenied", () => request.socket.destroy());
  });
  expect(refused).toMatchObject({ answer: { status: 403, retryAfter: "7", body: "AccessDenied" }, sent: 0 });
});

test("a file is also sent to a server that never asks for it", async () => {
  const silent = await upload(10, (request, response) => {
    request.resume().on("end", () => response.end());
  });
  expect(silent).toMatchObject({ answer: { status: 200 }, sent: 10 });
});
