/** Starts a local service that a test ends and starts again on the same data. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type ApiClient, apiClient } from "../../docs/client/client.ts";
import { localToken } from "../../infra/local/local-token.ts";
import { start } from "../infra/local/start-process.ts";

export interface Running {
  clientOf(email: string): Promise<ApiClient>;
  end(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}

/** Returns a function that starts the service on one directory of data. The directory is removed when the test has finished. */
export function restartable(environment: Record<string, string> = {}): () => Promise<Running> {
  const DATA_DIR = mkdtempSync(join(tmpdir(), "canvassing-restart-"));
  onTestFinished(() => rmSync(DATA_DIR, { recursive: true, force: true }));
  return async () => {
    const { child, ready, code } = start([], { ...environment, DATA_DIR });
    const end: Running["end"] = async (signal) => {
      child.kill(signal);
      await code;
    };
    onTestFinished(() => end("SIGKILL"));
    const baseUrl = await ready;
    const clientOf: Running["clientOf"] = async (email) => {
      const token = await localToken(baseUrl, email);
      return apiClient({ baseUrl, accessToken: () => token });
    };
    return { clientOf, end };
  };
}
