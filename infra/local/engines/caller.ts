/** Reads the caller and the operation from a request to a local server of AWS. */
import type { IncomingHttpHeaders } from "node:http";

/** Returns the access key with which the request is signed. Each function of the local service has its own name as access key. */
export const callerOf = ({ authorization = "" }: IncomingHttpHeaders): string | undefined =>
  /Credential=([^/]+)\//.exec(authorization)?.[1];

/** Returns the operation of a request in the JSON protocol of AWS, for example `GetItem`. */
export const operationOf = (headers: IncomingHttpHeaders): string | undefined =>
  String(headers["x-amz-target"]).split(".")[1];
