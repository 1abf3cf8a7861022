/** Tests the upload of a file whose length changes after the upload has begun. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sendFile } from "../../infra/cli/csv/transfer.ts";

/** Sends a file of ten bytes, and states another length. Returns the number of bytes that the server received. */
async function upload(bytes: number): Promise<{ received: number; error: unknown }> {
  const folder = await mkdtemp(path.join(tmpdir(), "canvassing-upload-"));
  const file = path.join(folder, "a.csv");
  await writeFile(file, "name\nAnna\n");
  let received = 0;
  const server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    request.on("end", () => response.writeHead(200).end());
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const headers = { "content-length": String(bytes) };
  const error: unknown = await sendFile({ url, headers, file, bytes }, new AbortController().signal, () => {}).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  return { received, error };
}

test("a file that has become shorter or longer is not uploaded", async () => {
  expect(await upload(10)).toEqual({ received: 10, error: undefined });
  const changed = { name: "Failed", message: "the file has changed during the upload" };
  expect((await upload(11)).error).toMatchObject(changed);
  const { received, error } = await upload(9);
  expect(error).toMatchObject(changed);
  expect(received).toBeLessThan(9);
});
