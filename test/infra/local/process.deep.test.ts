/** Tests that `npm start` and the commands refuse wrong settings and a port in use in one line of output, with exit code 1. */
import { expect, test } from "vitest";
import { serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import { run, start } from "./start-process.ts";

test("a port in use leads to one line of output and exit code 1", async () => {
  const taken = await serveOnLoopback(async () => undefined);
  const port = Number(new URL(taken.endpoint).port);
  const { code, output } = start(["--memory"], { PORT: String(port) });
  expect(await code).toBe(1);
  expect(output()).toBe(`port ${port} is in use: choose another one, for example PORT=${port + 1} npm start\n`);
  taken.stop();
});

test.each([
  ["a data directory in a file", { DATA_DIR: "package.json/data" }],
  ["a data directory in which nothing can be created", { DATA_DIR: "/proc/data" }],
])("%s leads to one line of output and exit code 1", async (_, env) => {
  const { child, code, output } = start([], env);
  // A process that hangs at the start would also ignore SIGTERM, because it does not return to the event loop. It is therefore ended with
  // SIGKILL.
  const hanging = setTimeout(() => child.kill("SIGKILL"), 120_000);
  expect(await code).toBe(1);
  clearTimeout(hanging);
  expect(output()).toMatch(/^DATA_DIR: \S+ cannot be used as a directory \(E[A-Z]+\): set it to another one\n$/);
  expect(output()).toContain(env.DATA_DIR);
});

test("the token command fails with one line after its target", () => {
  const message =
    "target: local service at http://[::1]:1\nno local service answers at http://[::1]:1: start it with npm start\n";
  const env = { HOST: "::1", PORT: "1" };
  expect(run("infra/cli/token.ts", ["rep@acme.test"], env)).toMatchObject({ status: 1, stdout: "", stderr: message });
});

test("the smoke test reads the same settings as the token command", () => {
  expect(run("infra/cli/smoke.ts", [], { HOST: "" })).toMatchObject({
    status: 1,
    stderr: "HOST: the value is not valid\n",
  });
});

test("a wrong setting is refused in one line", async () => {
  const { code, output } = start([], { LOCAL_TIME_SCALE: "0" });
  expect(await code).toBe(1);
  expect(output()).toBe("LOCAL_TIME_SCALE: the value is not valid\n");
});
