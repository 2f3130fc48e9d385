# One image with both commands, for the platform that is asked for:
#
#   docker build --build-arg VERSION=v2.0.0 --build-arg COMMIT=... --build-arg DATE=... -t bottlerocket-update-operator:v2.0.0 .
#
# dev/image makes the same one without a container engine, and its test compares.
#
# The build stage always runs on the builder's own platform and cross-compiles: no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=unknown
ARG COMMIT
ARG DATE
# The base image may be a patch release behind what go.mod asks for.
ENV CGO_ENABLED=0 GOTOOLCHAIN=auto
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY pkg pkg
COPY dev/licences.sh dev/
COPY dev/image/roots dev/image/roots
RUN mkdir -p /out/bin /out/licenses && \
    go run ./dev/image/roots/cmd > /out/ca-certificates.crt && \
    GOOS=$TARGETOS GOARCH=${TARGETARCH:-$(go env GOARCH)} go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry.Version=$VERSION \
        -X github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry.Commit=$COMMIT \
        -X github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry.Date=$DATE" \
      -o /out/bin/ ./cmd/bottlerocket-update-operator ./cmd/bottlerocket-update-agent
COPY COPYRIGHT LICENSE-APACHE LICENSE-MIT ./
RUN sh dev/licences.sh /out/licenses

# The unit tests, for `make container-test`: no other stage needs this one.
FROM build AS test
COPY . .
RUN go test -short ./cmd/... ./pkg/...

FROM scratch
COPY --from=build /out/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/licenses /licenses
COPY --from=build /out/bin/bottlerocket-update-operator /out/bin/bottlerocket-update-agent /
# Nobody: nothing in the image is writable for this user, and nothing needs to be.
USER 65532:65532
ENTRYPOINT ["/bottlerocket-update-operator"]
