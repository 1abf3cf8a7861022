/** What a function's environment and its host say to each other, one invocation at a time. */

import type { LogLevel } from "./console.ts";

export interface Invocation {
  readonly type: "invoke";
  /** The event as JSON text. */
  readonly event: string;
  readonly requestId: string;
  /** Milliseconds since the epoch at which the function is ended. */
  readonly deadline: number;
  /** Whether the caller asked for a response stream. */
  readonly streamed: boolean;
}

/** `pull` says that the host has passed the last chunk on and has room for another. */
export type ToWorker = Invocation | { readonly type: "pull" };

export interface FunctionFailure {
  readonly errorType: string;
  readonly errorMessage: string;
}

export type FromWorker =
  | { readonly type: "ready" }
  | { readonly type: "done"; readonly payload: string }
  | { readonly type: "failed"; readonly failure: FunctionFailure }
  /** Status and headers of a streamed response as JSON text. */
  | { readonly type: "head"; readonly metadata: string }
  | { readonly type: "chunk"; readonly data: Uint8Array }
  | { readonly type: "end" }
  /** What the function wrote to its console, as the line that Lambda would send to the log group. */
  | { readonly type: "log"; readonly line: string };

/** What a new environment is told besides its environment variables. */
export interface WorkerData {
  readonly bundle: string;
  readonly functionName: string;
  readonly functionArn: string;
  readonly memoryMb: number;
  readonly compileCache: string | null;
  readonly logLevel: LogLevel;
}
