/**
 * Saves a response of the API as a file. A plain link cannot be used, because it does not send the header without which the service ignores
 * the cookie.
 */
import { RequestFailed, SAME_SITE, signIn, withSession } from "./client.ts";

export async function download(path: string, name: string): Promise<void> {
  const response = await withSession(new Request(path, { headers: SAME_SITE }));
  if (response.status === 401) return signIn();
  if (!response.ok) throw new RequestFailed(response.status, await response.json().catch(() => undefined));
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
