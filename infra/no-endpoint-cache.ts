/** Takes the place of the SDK's cache of discovered endpoints in bundles: none is discovered, and it is 8 KB. */
export class EndpointCache {
  get(): never {
    throw new Error("endpoint discovery is not part of this bundle");
  }
}
