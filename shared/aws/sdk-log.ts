/** Passes the messages of the AWS SDK to the service's log. */
import { errorFields, log } from "#shared/log.ts";

interface FailedCall {
  readonly commandName: string;
  readonly error: unknown;
}

/**
 * The SDK writes its messages to this object. The object has no function `info`, because for `info` the SDK copies each request and each
 * response. It makes no copies if the function is missing. The type of the SDK requires the function, so the class only declares it.
 */
class SdkLog {
  declare readonly info: () => void;

  /** The SDK writes here which rules it applies to find the endpoint. */
  debug(): void {
    // Nobody needs these messages.
  }

  warn(message: unknown): void {
    log.warn("aws sdk warning", { message: String(message) });
  }

  /**
   * The level is `debug`, because the caller handles or logs the error. Some errors are usual, for example a failed condition. The SDK also
   * passes the input of the call, which must not be logged.
   */
  error({ commandName, error }: FailedCall): void {
    log.debug("aws call failed", { command: commandName, ...errorFields(error) });
  }
}

export const sdkLog = new SdkLog();
