/** Tests that a page at `localhost` is redirected to the console's own address. */
import { expect, test } from "vitest";
import { baseUrl } from "../harness/client.ts";

test("a page at localhost leads to the address to which a sign-in returns, because browsers keep the cookies of each host apart", async () => {
  const own = new URL(baseUrl());
  const local = `http://localhost:${own.port}`;
  const page = await fetch(`${local}//evil.example/prospects?status=New`, { redirect: "manual" });
  expect([page.status, page.headers.get("location")]).toEqual([
    307,
    `${own.origin}//evil.example/prospects?status=New`,
  ]);
  expect((await fetch(`${local}/health`)).status).toBe(200);
});
